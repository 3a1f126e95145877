"""Worlds in which Packer builds a cloud's image without a cloud: used by the integration tests.

A *world* is a set of namespaces in which only the loopback is up, so that nothing can dial out. In
it run an emulator of the cloud's API and a stand-in for the instance that the cloud would start: a
real sshd over a bare Debian. Packer and its provisioning are the real ones.

These are emulators. They check what we ask a cloud for and in which order, that everything made is
removed, and what is said when something fails. They do not check the cloud: whether it accepts a
size, a quota, an image's generation, a network driver or a permission is known only there.
"""
