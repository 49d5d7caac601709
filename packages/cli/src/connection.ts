/**
 * The address and the credentials of a command: from flags, else from the environment, else from `.keyward/demo.json`,
 * which `npm start` writes. Prefer the environment for secrets, because flags are visible in process lists.
 * Invariant: a token is never sent over plain http to another machine unless that is allowed explicitly.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { z } from 'zod'

import { EXIT, Failure } from './failure.ts'

export const connectionFlags = z.object({
  url: z.string().optional(),
  token: z.string().optional(),
  operatorToken: z.string().optional(),
  allowHttp: z.boolean().default(false),
})

const LOOPBACK = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/

const demoFile = z.object({
  baseUrl: z.string(),
  managementToken: z.string(),
  operatorToken: z.string(),
  productId: z.string(),
  customerId: z.string(),
})

export interface Connection {
  /** The base address of the service, without a slash at its end. */
  baseUrl: string
  /** Returns the management token. Throws Failure when there is none. */
  token: () => string
  /** Returns the operator token. Throws Failure when there is none. */
  operatorToken: () => string
  /** The demo's product and customer; null unless the demo's token is used. */
  demo: { productId: string; customerId: string } | null
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Finds the address and the credentials. `home` may contain `.keyward/`. Throws Failure. */
export function connect(flags: z.infer<typeof connectionFlags>, env: Environment, home: string): Connection {
  const demo = readDemo(join(home, '.keyward', 'demo.json'))
  const given = flags.url ?? env['KEYWARD_URL'] ?? demo?.baseUrl
  if (given === undefined)
    throw new Failure(EXIT.usage, 'No address is set; give --url or KEYWARD_URL, or run "npm start" here first')
  if (!/^https?:\/\//.test(given) || !URL.canParse(given))
    throw new Failure(EXIT.usage, `${given} is not an address; give one such as https://licenses.example.com`)
  const { protocol, hostname } = new URL(given)
  if (protocol === 'http:' && !LOOPBACK.test(hostname) && !flags.allowHttp && env['KEYWARD_ALLOW_HTTP'] !== '1')
    throw new Failure(
      EXIT.usage,
      `${given} would send the token in clear text; use https, or --allow-http (KEYWARD_ALLOW_HTTP=1) in a network that you trust`,
    )
  const baseUrl = given.replace(/\/+$/, '')
  // The demo's secrets are sent to the demo's address only.
  const own = demo !== null && demo.baseUrl === baseUrl ? demo : null
  const givenToken = flags.token ?? env['KEYWARD_TOKEN']
  return {
    baseUrl,
    token: () => givenToken ?? own?.managementToken ?? missing('--token or KEYWARD_TOKEN'),
    operatorToken: () =>
      flags.operatorToken ??
      env['OPERATOR_TOKEN'] ??
      own?.operatorToken ??
      missing('--operator-token or OPERATOR_TOKEN'),
    demo: givenToken === undefined ? own : null,
  }
}

function missing(how: string): never {
  throw new Failure(EXIT.usage, `This command needs a credential; give ${how}`)
}

/** Reads the demo's file. Returns null when there is none. Throws Failure when it is damaged. */
function readDemo(path: string): z.infer<typeof demoFile> | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return null
  }
  try {
    return demoFile.parse(JSON.parse(text))
  } catch {
    throw new Failure(EXIT.usage, `${path} is damaged; delete it, and "npm start" writes a new one`)
  }
}
