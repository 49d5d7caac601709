/**
 * Provides a command with its connection, API, output, clock and folders. Commands do not read the global flags or environment variables
 * themselves.
 */

import type { Command } from 'commander'
import { z } from 'zod'

import { type Api, createApi } from './api.ts'
import { connect, type Connection, connectionFlags, type Environment } from './connection.ts'
import { createOutput, type Output, type Streams } from './output.ts'

/** The environment, streams, folders and clock of a run. Tests replace them. */
export interface RunContext {
  env: Environment
  streams: Streams
  /** The folder that contains `.keyward/`. */
  home: string
  /** The folder to which relative file names refer. */
  folder: string
  nowMs: () => number
}

export interface Session {
  context: RunContext
  connection: Connection
  api: Api
  output: Output
}

const globalFlags = connectionFlags.extend({ json: z.boolean().default(false), get: z.string().optional() })

/** Opens the session of a command. Throws Failure when the address or a flag is invalid. */
export function openSession(context: RunContext, command: Command): Session {
  const { json, get, ...flags } = globalFlags.parse(command.optsWithGlobals())
  const connection = connect(flags, context.env, context.home, context.streams.err)
  return { context, connection, api: createApi(connection), output: createOutput(context.streams, { json, get }) }
}
