/**
 * What every command is given: the API, the output, the clock and where files lie. Made once a run from the global
 * flags and the environment, so that a command reads neither by itself.
 */
import type { Command } from 'commander'
import { z } from 'zod'

import { type Api, createApi } from './api.ts'
import { connect, type Connection, connectionFlags, type Environment } from './connection.ts'
import { createOutput, type Output, type Streams } from './output.ts'

/** Where a run happens: everything that a test sets by itself. */
export interface Surroundings {
  env: Environment
  streams: Streams
  /** Where `.keyward/` lies. */
  home: string
  /** What file names are relative to. */
  folder: string
  nowMs: () => number
}

export interface Session {
  surroundings: Surroundings
  connection: Connection
  api: Api
  output: Output
}

const globalFlags = connectionFlags.extend({ json: z.boolean().default(false) })

export function openSession(surroundings: Surroundings, command: Command): Session {
  const { json, ...flags } = globalFlags.parse(command.optsWithGlobals())
  const connection = connect(flags, surroundings.env, surroundings.home)
  return { surroundings, connection, api: createApi(connection), output: createOutput(surroundings.streams, json) }
}

export function wantsJson(command: Command): boolean {
  return globalFlags.safeParse(command.optsWithGlobals()).data?.json ?? false
}
