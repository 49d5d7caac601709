/** The option `--export` of lists, which saves all items of a filter in a file. */

import { extname, resolve } from 'node:path'

import type { AnyInput, Operation } from '@keyward/contract/operations'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'

/** Adds `--export` to the command of a list. */
export function withExport(command: CliCommand): CliCommand {
  return command.option('--export <file>', 'save all matches in this file, with the extension .csv or .jsonl')
}

/** Saves the items that the query selects, in the format that the extension of the file names. */
export async function saveExport(
  { api, output, context }: Session,
  operation: Operation,
  query: NonNullable<AnyInput['query']>,
  { file, formats }: { file: string; formats: readonly string[] },
): Promise<void> {
  const format = extname(file).slice(1).toLowerCase()
  if (!formats.includes(format))
    throw new Failure(EXIT.usage, `The name of the file must end with .${formats.join(' or .')}; got ${file}`)
  const bytes = await api.download(operation, { query: { ...query, format } }, resolve(context.folder, file))
  output.result({ file, bytes }, `Wrote ${file}.`)
}

/** Saves the items of a list, and returns true, if the flags contain `--export`. */
export async function isExported(
  session: Session,
  flags: unknown,
  operation: Operation,
  query: NonNullable<AnyInput['query']>,
): Promise<boolean> {
  const { export: file } = z.object({ export: z.string().optional() }).parse(flags)
  if (file === undefined) return false
  await saveExport(session, operation, query, { file, formats: ['csv', 'jsonl'] })
  return true
}
