# Adapts compose.yaml to docker-compose 1.29 and Podman 4.3 (docs/operations/install.md#with-podman).

# This version of compose rejects the name of the project. COMPOSE_PROJECT_NAME replaces it.
/^name:/d
# Podman reports this option for every network with subnets. Without it, each later command `up` would fail.
s/ipam: {/ipam: { options: { driver: host-local },/
# In Podman, the name of a service has an address in each network. haproxy connects through `edge` or `monitoring`, so its address is
# fixed and trusted in both.
s/^  monitoring: { internal: true }$/  monitoring: { internal: true, ipam: { options: { driver: host-local }, config: [{ subnet: 172.30.2.0\/24, ip_range: 172.30.2.128\/25 }] } }/
s/^      monitoring: {}$/      monitoring: { ipv4_address: 172.30.2.10 }/
s/KEYWARD_TRUSTED_PROXIES: 172\.30\.0\.10$/KEYWARD_TRUSTED_PROXIES: 172.30.0.10,172.30.2.10/
