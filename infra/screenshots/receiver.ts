/** Adds webhook endpoints with deliveries and a set of rules to the demo data, so that the screens of webhooks and sets are not empty. */

import { createServer, type Server } from 'node:http'

import { z } from 'zod'

import type { DemoFile } from '../start/state.ts'

/** The variables that allow management to send webhooks to the receiver, which runs on this machine. */
export const RECEIVER_SETTINGS = {
  KEYWARD_WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  KEYWARD_WEBHOOK_ALLOWED_PORTS: 'all',
  KEYWARD_WEBHOOK_ALLOW_HTTP: 'true',
}

const created = z.object({ id: z.string() })
const deliveries = z.object({ data: z.array(z.object({ attempts: z.array(z.unknown()) })).min(1) })
const SET = 'tor exits'

export interface Added {
  /** An endpoint with a failed delivery. */
  readonly endpoint: string
  readonly delivery: string
  readonly set: string
  readonly close: () => void
}

/** Starts a receiver that accepts events at `/crm` and returns 500 at all other paths. */
async function startReceiver(): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    const isAccepted = request.url === '/crm'
    request.resume().on('end', () => {
      response.writeHead(isAccepted ? 204 : 500).end(isAccepted ? '' : '{"error":"the queue is full"}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { server, url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}` }
}

export async function addWebhooks({ managementUrl, managementToken }: DemoFile): Promise<Added> {
  const send = async <Schema extends z.ZodType>(method: string, path: string, schema: Schema, body?: object) => {
    const headers = { authorization: `Bearer ${managementToken}`, 'content-type': 'application/json' }
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const response = await fetch(`${managementUrl}/api/v1${path}`, sent)
    return schema.parse(await response.json())
  }
  const { server, url } = await startReceiver()
  const add = async (path: string, description: string, types: readonly string[]) => {
    const endpoint = await send('POST', '/webhook-endpoints', created, { url: url + path, description, types })
    const { id } = await send('POST', `/webhook-endpoints/${endpoint.id}/test`, created)
    const list = `/webhook-endpoints/${endpoint.id}/deliveries`
    while ((await send('GET', list, deliveries)).data[0]!.attempts.length === 0)
      await new Promise((resolve) => setTimeout(resolve, 200))
    return { endpoint: endpoint.id, delivery: id }
  }
  await add('/crm', 'Customer relations', ['license.*', 'customer.*'])
  const failing = await add('/queue', 'Accounting', ['*'])
  const rules = ['185.220.101.0/25', '192.42.116.16/28', '2001:db8:77::/48'].map((value) => ({
    kind: 'BLACKLIST',
    type: 'IP',
    value,
    scope: 'ORGANIZATION',
  }))
  await send('PUT', `/access-rules/sets/${encodeURIComponent(SET)}`, z.unknown(), { rules })
  return { ...failing, set: SET, close: () => server.close() }
}
