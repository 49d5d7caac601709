/** Starts the real validator and management service as processes with one database, and creates a vendor with one license. */

import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { createTestDatabase } from '@keyward/testkit'

export interface Program {
  process: ChildProcess
  url: string
  adminUrl: string
}

export interface Vendor {
  apiKey: string
  managementToken: string
  licenseId: string
  licenseKey: string
  productId: string
  /** Calls the management API as the vendor and returns the body of the response. Rejects for an error. */
  call: (method: string, path: string, body?: object) => Promise<Record<string, unknown>>
}

export interface Programs {
  validator: Program
  management: Program
  vendor: Vendor
  /** Fetches the current public keys for an app. */
  publicKeys: () => Promise<{ keyId: string; publicKey: string }[]>
  /** Starts a validator after the previous one was killed. */
  restartValidator: () => Promise<void>
  close: () => Promise<void>
}

const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'
export const EXPIRES_AT = '2999-01-01T00:00:00.000Z'

export async function startPrograms(): Promise<Programs> {
  const database = await createTestDatabase()
  const startValidator = () =>
    start('validator', { KEYWARD_VALIDATOR_DATABASE_URL: database.validatorUrl, KEYWARD_VALIDATOR_WORKERS: '1' })
  const management = await start('management', {
    KEYWARD_DATABASE_URL: database.url,
    KEYWARD_MASTER_KEY: randomBytes(32).toString('hex'),
    KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN,
  })
  const programs: Programs = {
    validator: await startValidator(),
    management,
    vendor: await createVendor(management.url),
    async publicKeys() {
      const authorization = `Bearer ${programs.vendor.apiKey}`
      const answer = await fetch(`${programs.validator.url}/api/v1/public-keys`, { headers: { authorization } })
      const { keys } = readObject(await answer.json())
      if (!Array.isArray(keys)) throw new Error('The response must contain a list of keys.')
      return keys
        .map(readObject)
        .map(({ keyId, publicKey }) => ({ keyId: String(keyId), publicKey: String(publicKey) }))
    },
    async restartValidator() {
      programs.validator = await startValidator()
    },
    async close() {
      await Promise.all([stop(programs.validator), stop(management)])
      await database.drop()
    },
  }
  return programs
}

async function start(name: 'validator' | 'management', settings: Record<string, string>): Promise<Program> {
  const prefix = `KEYWARD_${name.toUpperCase()}`
  const child = fork(fileURLToPath(new URL(`../../../services/${name}/src/main.ts`, import.meta.url)), {
    env: {
      ...process.env,
      [`${prefix}_PORT`]: '0',
      [`${prefix}_ADMIN_PORT`]: '0',
      KEYWARD_LOG_LEVEL: 'silent',
      ...settings,
    },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const listening = new Promise<unknown>((resolve) => void child.once('message', resolve))
  const { port, adminPort } = readObject(await listening)
  const at = (value: unknown) => `http://127.0.0.1:${Number(value)}`
  const program = { process: child, url: at(port), adminUrl: at(adminPort) }
  while ((await fetch(`${program.adminUrl}/readyz`)).status !== 200) await sleep(20)
  return program
}

async function stop({ process: child }: Program): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGCONT')
  child.kill('SIGTERM')
  await exited
}

async function createVendor(url: string): Promise<Vendor> {
  // A change with `Prefer: wait` waits only for validators that have reported their position in the change log.
  const isFollowed = async () => {
    const { data } = await call(url, OPERATOR_TOKEN, 'GET', 'validators')
    return Array.isArray(data) && data.map(readObject).some(({ behindBy }) => typeof behindBy === 'number')
  }
  while (!(await isFollowed())) await sleep(20)
  const plan = { name: 'Acme', plan: 'STANDARD' }
  const organization = await call(url, OPERATOR_TOKEN, 'POST', 'organizations', plan, 10)
  const token = String(organization['managementToken'])
  const create = (path: string, body: object) => call(url, token, 'POST', path, body, 10)
  const product = await create('products', { name: 'Editor' })
  const customer = await create('customers', { email: 'ada@example.com' })
  const policy = { type: 'SUBSCRIPTION', maxMachines: 1, expiresAt: EXPIRES_AT }
  const license = await create('licenses', { productId: product['id'], customerId: customer['id'], policy })
  return {
    apiKey: String(organization['apiKey']),
    managementToken: token,
    licenseId: String(license['id']),
    licenseKey: String(license['key']),
    productId: String(product['id']),
    call: (method, path, body) => call(url, token, method, path, body),
  }
}

/** Sends a request to the management API. Resolves when all live validators have applied the change, or after `waitSeconds`. */
async function call(url: string, token: string, method: string, path: string, body?: object, waitSeconds = 0) {
  const response = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(waitSeconds > 0 && { prefer: `wait=${waitSeconds}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? {} : readObject(JSON.parse(text))
}

function readObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error(`Not an object: ${JSON.stringify(value)}`)
  return Object.fromEntries(Object.entries(value))
}
