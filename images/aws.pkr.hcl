# AWS: an instance from a named AMI, made into an encrypted private AMI and copied to the regions. It is
# a candidate until `mvstack image publish` shares it.
source "amazon-ebs" "image" {
  region        = var.aws_region
  instance_type = var.aws_instance_type
  subnet_id     = var.aws_subnet

  source_ami_filter {
    filters = {
      name                = var.aws_base_name
      root-device-type    = "ebs"
      virtualization-type = "hvm"
    }
    owners      = [var.aws_base_owner]
    most_recent = true
  }

  ami_name        = local.name
  ami_description = "mvapich-stack ${var.release} for ${var.image}, commit ${var.commit}"
  ami_regions     = var.aws_copy_regions
  deprecate_at    = var.last_day == "" ? null : "${var.last_day}T23:59:00Z"
  encrypt_boot    = true
  kms_key_id      = var.aws_kms_key
  # a key is of one region; AWS shares nothing that is encrypted with its own key for EBS
  region_kms_key_ids = length(var.aws_copy_keys) > 0 ? var.aws_copy_keys : null

  ena_support   = true
  sriov_support = true
  boot_mode     = "uefi-preferred"
  # IMDSv2 alone: while it is built, and on every instance that is started from it.
  imds_support = "v2.0"
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  launch_block_device_mappings {
    device_name           = "/dev/sda1"
    volume_size           = var.disk_gb
    volume_type           = "gp3"
    throughput            = 125
    iops                  = 3000
    delete_on_termination = true
  }

  # `mvstack image clean` finds it by this name where it has no tags
  temporary_key_pair_name = "mvapich-stack-${var.build_id}"
  temporary_key_pair_type = var.ssh_private_key_file == "" ? "ed25519" : null

  run_tags        = local.building
  run_volume_tags = local.building
  snapshot_tags   = local.building
  tags            = local.building

  access_key                 = var.aws_access_key
  secret_key                 = var.aws_secret_key
  custom_endpoint_ec2        = var.aws_endpoint
  skip_region_validation     = var.aws_offline
  skip_credential_validation = var.aws_offline
  skip_metadata_api_check    = var.aws_offline

  communicator         = "ssh"
  ssh_username         = var.user
  ssh_host             = var.ssh_host
  ssh_port             = var.ssh_port
  ssh_private_key_file = var.ssh_private_key_file
  ssh_timeout          = var.ssh_timeout
}
