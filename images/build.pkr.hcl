# What is done to an instance of any cloud, in order. A step that fails ends the build, and Packer then
# removes the instance and all that it made for it; no image is kept.
build {
  sources = [
    "source.azure-arm.image",
    "source.amazon-ebs.image",
    "source.qemu.image",
  ]

  provisioner "shell" {
    inline = [
      "mkdir -p /var/tmp/mvapich-stack-image",
      "# the base's own first start: packages cannot be installed while it does",
      "if [ -d /run/systemd/system ] && command -v cloud-init >/dev/null; then timeout 600 cloud-init status --wait >/dev/null || true; fi",
    ]
  }

  provisioner "file" {
    source      = var.kit
    destination = "/var/tmp/mvapich-stack-image/kit.tar"
  }

  provisioner "shell" {
    inline = [
      "cd /var/tmp/mvapich-stack-image",
      "echo '${var.kit_sha256}  kit.tar' | sha256sum --check --quiet",
      "sudo tar --no-same-owner -xf kit.tar && rm kit.tar",
      "echo 'mvapich-stack: provisioning'",
      "sudo ./provision/run",
      "echo 'mvapich-stack: provisioning again, which must change nothing'",
      "sudo ./provision/run --expect-unchanged",
    ]
  }

  provisioner "shell" {
    inline = [
      "echo 'mvapich-stack: testing in the image'",
      "sudo /var/tmp/mvapich-stack-image/provision/smoke",
    ]
  }

  provisioner "shell" {
    inline = [
      "echo 'mvapich-stack: generalising'",
      "sudo /var/tmp/mvapich-stack-image/provision/generalise",
    ]
    skip_clean = true
  }

  post-processor "manifest" {
    output     = var.manifest
    strip_path = true
    custom_data = {
      name     = local.name
      build_id = var.build_id
      commit   = var.commit
    }
  }
}
