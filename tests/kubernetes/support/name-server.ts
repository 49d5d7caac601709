/**
 * A program that answers the DNS queries of pods, as CoreDNS does in a cluster: with the address of a service, or with the addresses of its
 * pods if the service is headless. Only A records exist. The first argument is the address of the server, and KUBECONFIG names the cluster.
 * It runs in a process of its own, because the tests block theirs.
 */

import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { z } from 'zod'

const TTL_SECONDS = 5
const HEADER_BYTES = 12
const TYPE_A = 1
/** The flags of an authoritative response that also offers recursion. */
const RESPONSE = 0x84_80
const NAME_ERROR = 3
/** A reference to the name of the question, which follows the header. */
const QUESTION_NAME = 0xc0_00 | HEADER_BYTES

const metadata = z.object({ name: z.string(), namespace: z.string() })
const address = z.object({ ip: z.string() })
const listSchema = z.object({
  items: z.array(
    z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal('Service'),
        metadata,
        spec: z.object({ clusterIP: z.string(), publishNotReadyAddresses: z.boolean().default(false) }),
      }),
      z.object({
        kind: z.literal('Endpoints'),
        metadata,
        subsets: z
          .array(z.object({ addresses: z.array(address).default([]), notReadyAddresses: z.array(address).default([]) }))
          .default([]),
      }),
    ]),
  ),
})

const REFRESH_MS = 500
const LIST = ['get', 'services,endpoints', '--all-namespaces', '--output=json']
let names: ReadonlyMap<string, readonly string[]> = new Map()

const socket = createSocket('udp4')
socket.on('message', (query, { port, address: peer }) => socket.send(respond(query), port, peer))
socket.bind(53, process.argv[2])
for (;;) {
  names = await namesNow().catch(() => names) // the API may not respond
  await sleep(REFRESH_MS)
}

/** Resolves to the addresses by name. */
async function namesNow(): Promise<Map<string, string[]>> {
  const { stdout } = await promisify(execFile)('kubectl', LIST, { maxBuffer: 64 * 2 ** 20 })
  const { items } = listSchema.parse(JSON.parse(stdout))
  const nameOf = (object: z.infer<typeof metadata>): string => `${object.name}.${object.namespace}.svc.cluster.local`
  const found = new Map<string, string[]>()
  for (const item of items)
    if (item.kind === 'Service') {
      const { clusterIP, publishNotReadyAddresses } = item.spec
      const own = items.find((other) => other.kind === 'Endpoints' && nameOf(other.metadata) === nameOf(item.metadata))
      const pods = (own?.kind === 'Endpoints' ? own.subsets : []).flatMap(({ addresses, notReadyAddresses }) =>
        publishNotReadyAddresses ? addresses.concat(notReadyAddresses) : addresses,
      )
      found.set(nameOf(item.metadata), clusterIP === 'None' ? pods.map(({ ip }) => ip) : [clusterIP])
    }
  return found
}

function respond(query: Buffer): Buffer {
  const { name, type, end } = questionOf(query)
  const addresses = names.get(name)
  const records = type === TYPE_A ? (addresses ?? []) : []
  const head = Buffer.alloc(HEADER_BYTES)
  head.writeUInt16BE(query.readUInt16BE(0), 0)
  head.writeUInt16BE(RESPONSE | (addresses === undefined ? NAME_ERROR : 0), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  return Buffer.concat([head, query.subarray(HEADER_BYTES, end), ...records.map(record)])
}

/** Returns the name and the type of a query's question, and the index after the question. */
function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function record(ip: string): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt16BE(QUESTION_NAME, 0)
  bytes.writeUInt16BE(TYPE_A, 2)
  bytes.writeUInt16BE(1, 4) // the class of the internet
  bytes.writeUInt32BE(TTL_SECONDS, 6)
  bytes.writeUInt16BE(4, 10)
  for (const [i, part] of ip.split('.').entries()) bytes[12 + i] = Number(part)
  return bytes
}
