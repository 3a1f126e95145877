# QEMU: a disk made from the distribution's packages, started in a virtual machine on this one.
source "qemu" "image" {
  iso_url          = var.qemu_disk
  iso_checksum     = "sha256:${var.qemu_disk_sha256}"
  disk_image       = true
  format           = "qcow2"
  disk_size        = "${var.disk_gb}G"
  disk_interface   = "virtio"
  disk_discard     = "unmap"
  disk_compression = true
  skip_compaction  = false
  output_directory = var.qemu_output
  vm_name          = "disk.qcow2"

  accelerator = var.qemu_accelerator
  memory      = var.qemu_memory_mb
  cpus        = var.qemu_cpus
  headless    = true
  qemuargs    = var.qemu_machine

  shutdown_command = "systemctl poweroff"

  communicator         = "ssh"
  ssh_username         = var.user
  ssh_private_key_file = var.ssh_private_key_file
  ssh_timeout          = var.ssh_timeout
}
