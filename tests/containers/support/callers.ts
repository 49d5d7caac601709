/** Sends requests through the published port: as a vendor, as an app, and from another network. */

import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import { HOST } from './installation.ts'

const NAMESPACE = `keyward-${process.pid}`
/** The addresses of this machine and of the caller in the other network. */
const ADDRESSES = { IPv4: ['10.99.73.1', '10.99.73.2', '24'], IPv6: ['fd99:73::1', 'fd99:73::2', '64'] } as const

/** The time in which an installation must start, on a busy machine too. */
const READY_MS = 900_000

const organizationSchema = z.object({ managementToken: z.string(), apiKey: z.string() })
const createdSchema = z.object({ id: z.string() })
const licenseSchema = z.object({ key: z.string() })

export interface Vendor {
  readonly managementToken: string
  readonly apiKey: string
  readonly licenseKey: string
}

/** The published address of an installation. */
export interface Edge {
  readonly address: string
  readonly port: number
  /** The path of a file that contains the certificate without the private key. */
  readonly certificate: string
  /** Returns a secret by the name of its variable. */
  secret(name: string): string
}

export class Callers {
  readonly #edge: Edge
  readonly #agent: Agent

  constructor(edge: Edge) {
    this.#edge = edge
    this.#agent = new Agent({ keepAlive: true, maxSockets: 16, ca: readFileSync(edge.certificate) })
  }

  async send(method: string, path: string, token: string, body?: object): Promise<{ status: number; body: unknown }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: unknown }>()
    const options = {
      host: this.#edge.address,
      port: this.#edge.port,
      servername: HOST,
      agent: this.#agent,
      method,
      path,
    }
    const headers = { host: HOST, authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = request({ ...options, headers }, (response) => {
      const status = response.statusCode ?? 0
      text(response).then((content) => resolve({ status, body: parse(content) }), reject)
    })
    sent.setTimeout(30_000, () => sent.destroy(new Error('no response')))
    sent.on('error', reject).end(body && JSON.stringify(body))
    return await promise
  }

  /** Resolves when both services respond through the balancer. */
  async untilReady(): Promise<void> {
    const endMs = performance.now() + READY_MS
    const responds = async (path: string): Promise<void> => {
      const statusOf = (): Promise<number | string> =>
        this.send('POST', path, 'unknown', {}).then((response) => response.status, String)
      for (let status = await statusOf(); status !== 401; status = await statusOf()) {
        if (performance.now() > endMs) throw new Error(`${path} must return 401 for an unknown token; got ${status}`)
        await sleep(500)
      }
    }
    await Promise.all([responds('/api/v1/organizations'), responds('/api/v2/license/validate')])
  }

  /** Creates an organization with a license, by default for any number of machines. Resolves when checks of the license are `VALID`. */
  async createVendor(maxMachines: number | null = null): Promise<Vendor> {
    const create = async <T>(path: string, token: string, body: object, schema: z.ZodType<T>): Promise<T> =>
      schema.parse((await this.send('POST', `/api/v1/${path}`, token, body)).body)
    const operator = this.#edge.secret('KEYWARD_OPERATOR_TOKEN')
    const { managementToken, apiKey } = await create(
      'organizations',
      operator,
      { name: 'Acme', plan: 'STANDARD' },
      organizationSchema,
    )
    const product = await create('products', managementToken, { name: 'Studio' }, createdSchema)
    const customer = await create(
      'customers',
      managementToken,
      { email: 'ada@example.com', name: 'Ada' },
      createdSchema,
    )
    const policy = { type: 'PERPETUAL', maxMachines, expiresAt: null }
    const license = { productId: product.id, customerId: customer.id, policy }
    const { key } = await create('licenses', managementToken, license, licenseSchema)
    const vendor = { managementToken, apiKey, licenseKey: key }
    for (let attempt = 0; (await this.check(vendor, 'machine-0')) !== 'VALID'; attempt++) {
      if (attempt === 3_000) throw new Error('The checks of a new license did not become valid.')
      await sleep(100)
    }
    return vendor
  }

  /** Returns the code in the response. Returns the status if the body has no code, and the error if there is no response. */
  async check({ apiKey, licenseKey }: Vendor, fingerprint: string): Promise<string> {
    const body = { license: licenseKey, fingerprint }
    return this.send('POST', '/api/v2/license/validate', apiKey, body).then(
      (response) => z.object({ code: z.string() }).safeParse(response.body).data?.code ?? `status ${response.status}`,
      String,
    )
  }

  /** Sends checks on 8 connections until the promise `until` settles. Resolves to the number of responses by code. */
  async checkDuring(vendor: Vendor, until: Promise<unknown>): Promise<Record<string, number>> {
    // The balancer may have closed idle connections while this process was blocked by a command.
    this.#agent.destroy()
    const codes: Record<string, number> = {}
    const done = new AbortController()
    const finished = until.finally(() => done.abort())
    const caller = async (number: number): Promise<void> => {
      while (!done.signal.aborted) {
        const code = await this.check(vendor, `machine-${number}`)
        codes[code] = (codes[code] ?? 0) + 1
        await sleep(10)
      }
    }
    await Promise.all([finished, ...Array.from({ length: 8 }, (_, number) => caller(number))])
    return codes
  }

  close(): void {
    this.#agent.destroy()
  }
}

function parse(content: string): unknown {
  const value: unknown = content.startsWith('{') ? JSON.parse(content) : content
  return value
}

/** Returns whether the tests may create network namespaces. */
export function hasNetworks(): boolean {
  return process.getuid?.() === 0 && spawnSync('ip', ['netns', 'list']).status === 0
}

/** A network namespace whose only caller reaches this machine over IPv4 and IPv6. */
export class OtherNetwork {
  constructor() {
    const ip = (...args: string[]): unknown => execFileSync('ip', args)
    ip('netns', 'add', NAMESPACE)
    ip('link', 'add', 'keyward0', 'type', 'veth', 'peer', 'name', 'keyward1', 'netns', NAMESPACE)
    for (const [here, there, bits] of Object.values(ADDRESSES)) {
      const nodad = bits === '64' ? ['nodad'] : []
      ip('addr', 'add', `${here}/${bits}`, 'dev', 'keyward0', ...nodad)
      ip('-n', NAMESPACE, 'addr', 'add', `${there}/${bits}`, 'dev', 'keyward1', ...nodad)
    }
    ip('link', 'set', 'keyward0', 'up')
    ip('-n', NAMESPACE, 'link', 'set', 'keyward1', 'up')
  }

  /** Returns the caller's own address, and the address that the installation determines for the caller. */
  addressOf(
    family: keyof typeof ADDRESSES,
    { port, certificate }: Edge,
    token: string,
  ): { own: string; seen: unknown } {
    const [here, own] = ADDRESSES[family]
    const target = family === 'IPv6' ? `[${here}]` : here
    const url = `https://${HOST}:${port}/api/v1/access-rules/my-ip`
    const options = ['--silent', '--show-error', '--max-time', '30', '--cacert', certificate]
    const address = ['--resolve', `${HOST}:${port}:${target}`, '--header', `authorization: Bearer ${token}`]
    const ran = spawnSync('ip', ['netns', 'exec', NAMESPACE, 'curl', ...options, ...address, url], { encoding: 'utf8' })
    if (ran.status !== 0) throw new Error(ran.stderr)
    return { own, seen: z.object({ ip: z.unknown() }).parse(JSON.parse(ran.stdout)).ip }
  }

  close(): void {
    spawnSync('ip', ['link', 'delete', 'keyward0'])
    spawnSync('ip', ['netns', 'delete', NAMESPACE])
  }
}
