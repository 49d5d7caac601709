/**
 * Which service a command talks to and as whom: flags first, then the environment, then `.keyward/demo.json` of an
 * installation that `npm start` made. Secrets are better given in the environment, since flags show in process lists.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { z } from 'zod'

import { EXIT, Failure } from './failure.ts'

export const connectionFlags = z.object({
  url: z.string().optional(),
  token: z.string().optional(),
  operatorToken: z.string().optional(),
})

const demoFile = z.object({
  baseUrl: z.string(),
  managementToken: z.string(),
  operatorToken: z.string(),
  productId: z.string(),
  customerId: z.string(),
})

export interface Connection {
  /** Without a slash at its end. */
  baseUrl: string
  /** Throw a Failure that says how to give the missing one. */
  token: () => string
  operatorToken: () => string
  /** The demo's product and customer, when the demo's token is used. */
  demo: { productId: string; customerId: string } | null
}

export type Environment = Readonly<Record<string, string | undefined>>

/** `home` is where `.keyward/` may lie. Throws Failure. */
export function connect(flags: z.infer<typeof connectionFlags>, env: Environment, home: string): Connection {
  const demo = readDemo(join(home, '.keyward', 'demo.json'))
  const given = flags.url ?? env['KEYWARD_URL'] ?? demo?.baseUrl
  if (given === undefined)
    throw new Failure(EXIT.usage, 'No address is known; give --url or KEYWARD_URL, or run "npm start" here first')
  if (!/^https?:\/\//.test(given) || !URL.canParse(given))
    throw new Failure(EXIT.usage, `${given} is no address; it takes one such as https://licenses.example.com`)
  const baseUrl = given.replace(/\/+$/, '')
  // The demo's secrets are for the demo's address alone.
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

/** Null when there is none; one that cannot be read as JSON is said, since somebody counts on it. */
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
    throw new Failure(EXIT.usage, `${path} is damaged; "npm start" writes it anew`)
  }
}
