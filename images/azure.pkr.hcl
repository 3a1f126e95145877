# Azure: a VM from the marketplace's image, made into a version of an Azure Compute Gallery. It is a
# candidate, and not what `latest` means, until `mvstack image publish`.
source "azure-arm" "image" {
  subscription_id = var.azure_subscription
  tenant_id       = var.azure_tenant
  client_id       = var.azure_client_id
  client_secret   = var.azure_client_secret
  # without a way to log in, Packer would ask for one at a terminal that nobody sits at
  use_azure_cli_auth = var.azure_cli_auth

  os_type         = "Linux"
  image_publisher = var.azure_publisher
  image_offer     = var.azure_offer
  image_sku       = var.azure_sku
  image_version   = var.azure_version

  location        = var.azure_location
  vm_size         = var.azure_vm_size
  os_disk_size_gb = var.disk_gb

  # The adapter of HPC sizes is SR-IOV either way; this is the Ethernet beside it.
  accelerated_networking = true
  # Gen2 is a property of the base and of the gallery's definition; trusted launch is asked for here.
  security_type       = var.azure_security_type
  secure_boot_enabled = var.azure_secure_boot
  vtpm_enabled        = true

  shared_image_gallery_destination {
    subscription        = var.azure_subscription
    resource_group      = var.azure_gallery_resource_group
    gallery_name        = var.azure_gallery
    image_name          = var.image
    image_version       = var.version
    replication_regions = var.azure_regions
  }
  shared_gallery_image_version_exclude_from_latest = true
  shared_gallery_image_version_end_of_life_date    = var.last_day == "" ? null : "${var.last_day}T23:59:00Z"

  azure_tags = local.building

  communicator         = "ssh"
  ssh_username         = var.user
  ssh_host             = var.ssh_host
  ssh_port             = var.ssh_port
  ssh_private_key_file = var.ssh_private_key_file
  ssh_timeout          = var.ssh_timeout
}
