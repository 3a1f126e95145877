# What `packer init images` installs. Packer 1.6.6 (Debian 12), enough for QEMU images, has its plugins
# built in and is not given this file. The versions still have to be confirmed by a first `packer init`.
packer {
  required_plugins {
    azure = {
      source  = "github.com/hashicorp/azure"
      version = "~> 2.3"
    }
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = "~> 1.3"
    }
    qemu = {
      source  = "github.com/hashicorp/qemu"
      version = "~> 1.1"
    }
  }
}
