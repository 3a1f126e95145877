# Three sorts of variables: those of the image (environments/rendered/…/image/variables.pkrvars.json),
# those of the build (mvstack image build sets them), and those of the site (its own file, --settings).

# --- the image -------------------------------------------------------------------------------------
variable "image" {
  type        = string
  description = "System and partition, e.g. azure-hbv4-hpc."
}

variable "release" {
  type        = string
  description = "The release in the image, e.g. 2026.11."
}

variable "user" {
  type        = string
  description = "Who one logs in as on the base image."
}

variable "disk_gb" {
  type        = number
  description = "Size of the root disk."
}

# --- the build -------------------------------------------------------------------------------------
variable "version" {
  type        = string
  description = "The image's own version, three numbers: 2026.11.0."

  validation {
    condition     = length(split(".", var.version)) == 3
    error_message = "An image's version has three numbers, as in 2026.11.0."
  }
}

variable "build_id" {
  type        = string
  description = "Names this run; everything that it makes carries it as a tag."
}

variable "commit" {
  type        = string
  description = "The commit of this repository that the image is made from."
}

variable "kit" {
  type        = string
  description = "Archive with the provisioning steps, the rendered files and the release."
}

variable "kit_sha256" {
  type        = string
  description = "Its hash; an instance that receives another refuses it."
}

variable "manifest" {
  type        = string
  description = "Where Packer writes what it made."
}

variable "ssh_host" {
  type        = string
  default     = ""
  description = "Connect to this address instead of the instance's (tests against emulators)."
}

variable "ssh_port" {
  type        = number
  default     = 22
  description = "The port that goes with it. Of several machines (mvstack image boot-test) the first; the others follow."
}

variable "ssh_private_key_file" {
  type        = string
  default     = ""
  description = "A key that the instance takes already; else Packer makes one for the build."
}

variable "last_day" {
  type        = string
  default     = ""
  description = "Last day on which the image is to be used, as 2027-06-30 (mvstack image build --last)."
}

variable "ssh_timeout" {
  type        = string
  default     = "15m"
  description = "How long an instance may take until it can be reached."
}

# --- Azure -----------------------------------------------------------------------------------------
variable "azure_publisher" {
  type    = string
  default = ""
}

variable "azure_offer" {
  type    = string
  default = ""
}

variable "azure_sku" {
  type    = string
  default = ""
}

variable "azure_version" {
  type    = string
  default = ""
}

variable "azure_vm_size" {
  type    = string
  default = ""
}

variable "azure_security_type" {
  type    = string
  default = "TrustedLaunch"
}

variable "azure_secure_boot" {
  type        = bool
  default     = false
  description = "Decided in the system's file, with the reason."
}

variable "azure_location" {
  type    = string
  default = "westeurope"
}

variable "azure_subscription" {
  type    = string
  default = ""
}

variable "azure_tenant" {
  type    = string
  default = ""
}

variable "azure_cli_auth" {
  type        = bool
  default     = false
  description = "Use the credentials of `az login`; else those named here."
}

variable "azure_client_id" {
  type    = string
  default = ""
}

variable "azure_client_secret" {
  type      = string
  default   = ""
  sensitive = true
}

variable "azure_gallery_resource_group" {
  type        = string
  default     = ""
  description = "Where the Azure Compute Gallery is. Its image definition is Gen2 with trusted launch."
}

variable "azure_gallery" {
  type    = string
  default = ""
}

variable "azure_regions" {
  type    = list(string)
  default = ["westeurope"]
}

# --- AWS -------------------------------------------------------------------------------------------
variable "aws_base_owner" {
  type    = string
  default = ""
}

variable "aws_base_name" {
  type    = string
  default = ""
}

variable "aws_instance_type" {
  type    = string
  default = ""
}

variable "aws_region" {
  type    = string
  default = "us-east-2"
}

variable "aws_copy_regions" {
  type        = list(string)
  default     = []
  description = "Regions that the AMI is copied to, encrypted there as well."
}

variable "aws_copy_keys" {
  type        = map(string)
  default     = {}
  description = "By region of aws_copy_regions, all of them or none: the key that encrypts the copy there."
}

variable "aws_subnet" {
  type    = string
  default = null
}

variable "aws_kms_key" {
  type        = string
  default     = null
  description = "Key that encrypts the disk; the account's own for EBS if none is named."
}

variable "aws_endpoint" {
  type        = string
  default     = ""
  description = "EC2 of an emulator (tests)."
}

variable "aws_access_key" {
  type        = string
  default     = ""
  sensitive   = true
  description = "Only for an emulator and for validation; else Packer finds the usual credentials."
}

variable "aws_secret_key" {
  type      = string
  default   = ""
  sensitive = true
}

variable "aws_offline" {
  type        = bool
  default     = false
  description = "Ask no AWS whether region and credentials exist (tests, validation)."
}

# --- mvstack image boot-test -----------------------------------------------------------------------
variable "prices" {
  type        = map(number)
  default     = {}
  description = "What an hour of a size costs, by size, in the currency of --budget."
}

variable "azure_subnet" {
  type        = string
  default     = ""
  description = "Identifier of the subnet whose machines are reached by ssh from here."
}

variable "aws_security_group" {
  type        = string
  default     = ""
  description = "Identifier of the group in aws_subnet's network that lets ssh in, and EFA among its own."
}

# --- QEMU ------------------------------------------------------------------------------------------
variable "qemu_disk" {
  type        = string
  default     = ""
  description = "The base disk, qcow2 (mvstack makes it from the distribution's packages)."
}

variable "qemu_disk_sha256" {
  type    = string
  default = ""
}

variable "qemu_seed" {
  type        = string
  default     = ""
  description = "ISO image for cloud-init (NoCloud) with the build's key."
}

variable "qemu_output" {
  type    = string
  default = ""
}

variable "qemu_accelerator" {
  type    = string
  default = "tcg"
}

variable "qemu_machine" {
  type        = list(list(string))
  default     = []
  description = "Further arguments of qemu-system: processor, network, seed."
}

variable "qemu_memory_mb" {
  type    = number
  default = 4096
}

variable "qemu_cpus" {
  type    = number
  default = 2
}

# --- what follows from these -----------------------------------------------------------------------
locals {
  name = "mvapich-stack-${var.image}-${var.version}"
  tags = { for key, value in {
    "mvapich-stack"             = "image"
    "mvapich-stack-build"       = var.build_id
    "mvapich-stack-image"       = var.image
    "mvapich-stack-version"     = var.version
    "mvapich-stack-commit"      = var.commit
    "mvapich-stack-release"     = var.release
    "mvapich-stack-end-of-life" = var.last_day
  } : key => value if value != "" }
  building = merge(local.tags, { "mvapich-stack-state" = "building" })
}
