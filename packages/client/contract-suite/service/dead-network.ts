/**
 * Runs a program in a network that drops every packet, as a machine behind a broken VPN has it. The name servers never answer,
 * and connections are never accepted or refused. The network is a namespace of Linux, which ends with the program.
 */

import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A host whose name the program cannot resolve. */
export const UNRESOLVABLE = 'https://licenses.example.com'
/** A host with three addresses, which accept no connection. */
export const BLACK_HOLED = 'https://three-addresses.example.com'

const ENTER = ['unshare', '--map-root-user', '--mount', '--net', 'sh', '-ec']
// Without ARP, packets to neighbours are sent, and the other end of the link discards them.
const LINK = `ip link set lo up; ip link add drop type veth peer name end; ip link set end up
ip link set drop arp off up; ip addr add 192.0.2.1/24 dev drop`
const MOUNTS = 'mount --bind "$0" /etc/resolv.conf; mount --bind "$1" /etc/hosts; shift; exec "$@"'
const RESOLVER = 'nameserver 192.0.2.2\nnameserver 192.0.2.3\nsearch example.net\n'
const HOSTS = `127.0.0.1 localhost\n${[2, 3, 4].map((last) => `192.0.2.${last} three-addresses.example.com\n`).join('')}`

let missing: string | null | undefined

/** Returns what the machine lacks for such a network, or null. */
export function missingForDeadNetwork(): string | null {
  missing ??=
    spawnSync(ENTER[0] ?? '', [...ENTER.slice(1), LINK], { stdio: 'ignore' }).status === 0
      ? null
      : 'requires Linux with unshare, ip and the right to create namespaces'
  return missing
}

/** Returns the command line that runs `command` in a dead network. `folder` receives the configuration of the resolver. */
export async function inDeadNetwork(command: readonly string[], folder: string): Promise<string[]> {
  const [resolver, hosts] = [join(folder, 'resolv.conf'), join(folder, 'hosts')]
  await Promise.all([writeFile(resolver, RESOLVER), writeFile(hosts, HOSTS)])
  return [...ENTER, `${LINK}\n${MOUNTS}`, resolver, hosts, ...command]
}
