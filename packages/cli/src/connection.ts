/**
 * Determines the address and the credentials of a command. Flags take precedence over the environment, and the environment
 * over `.keyward/demo.json`, which `npm start` writes. Prefer the environment for secrets, because process lists show flags.
 * Invariant: tokens are sent over plain http to other machines only with `--allow-http` or `KEYWARD_ALLOW_HTTP=1`.
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
  /** The base URL of the service, without a slash at its end. */
  baseUrl: string
  /** Returns the management token. Throws Failure when there is none. */
  token: () => string
  /** Returns the operator token. Throws Failure when there is none. */
  operatorToken: () => string
  /** The product and customer of the demo. Null unless the token of the demo is used. */
  demo: { productId: string; customerId: string } | null
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Finds the address and the credentials. `home` is the folder that may contain `.keyward/`. `report` receives a line when
 * a variable is used that is set by its old name. Throws Failure if the address is missing or not allowed.
 */
export function connect(
  flags: z.infer<typeof connectionFlags>,
  variables: Environment,
  home: string,
  report: (line: string) => void,
): Connection {
  // An empty variable counts as not set.
  const env: Environment = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
  const demo = readDemo(join(home, '.keyward', 'demo.json'))
  const given = flags.url ?? env['KEYWARD_URL'] ?? demo?.baseUrl
  if (given === undefined)
    throw new Failure(
      EXIT.usage,
      'The address of the service is missing. Set --url or KEYWARD_URL, or run "npm start" in this folder first',
    )
  if (!/^https?:\/\//.test(given) || !URL.canParse(given))
    throw new Failure(
      EXIT.usage,
      `${given} is not a URL. Set --url or KEYWARD_URL to a URL such as https://licenses.example.com`,
    )
  const { protocol, hostname } = new URL(given)
  if (protocol === 'http:' && !LOOPBACK.test(hostname) && !flags.allowHttp && env['KEYWARD_ALLOW_HTTP'] !== '1')
    throw new Failure(
      EXIT.usage,
      `The token would be sent to ${given} in clear text. Use https, or --allow-http (KEYWARD_ALLOW_HTTP=1) in a trusted network`,
    )
  const baseUrl = given.replace(/\/+$/, '')
  // The demo's secrets are sent only to the address of the demo.
  const own = demo !== null && demo.baseUrl === baseUrl ? demo : null
  const givenToken = flags.token ?? env['KEYWARD_TOKEN']
  let isReported = false
  const reportOnce = (line: string): void => {
    if (!isReported) report(line)
    isReported = true
  }
  return {
    baseUrl,
    token: () => givenToken ?? own?.managementToken ?? missing('--token or KEYWARD_TOKEN'),
    operatorToken: () =>
      flags.operatorToken ??
      operatorTokenOf(env, reportOnce) ??
      own?.operatorToken ??
      missing('--operator-token or KEYWARD_OPERATOR_TOKEN'),
    demo: givenToken === undefined ? own : null,
  }
}

/** Returns the variable KEYWARD_OPERATOR_TOKEN, or its old name OPERATOR_TOKEN, which it reports. Throws Failure if they differ. */
function operatorTokenOf(env: Environment, report: (line: string) => void): string | undefined {
  const { KEYWARD_OPERATOR_TOKEN: token, OPERATOR_TOKEN: old } = env
  if (token !== undefined && old !== undefined && token !== old)
    throw new Failure(
      EXIT.usage,
      'KEYWARD_OPERATOR_TOKEN and its old name OPERATOR_TOKEN have different values; remove OPERATOR_TOKEN',
    )
  if (token === undefined && old !== undefined) report('OPERATOR_TOKEN is the old name of KEYWARD_OPERATOR_TOKEN.\n')
  return token ?? old
}

function missing(how: string): never {
  throw new Failure(EXIT.usage, `This command requires a credential. Set ${how}`)
}

/** Reads `.keyward/demo.json`. Returns null if the file is missing, and throws Failure if it is damaged. */
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
    throw new Failure(EXIT.usage, `${path} is damaged. Delete the file, and run "npm start" to create it again`)
  }
}
