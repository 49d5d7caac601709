import { parseArgs } from 'node:util'

import { ConfigError } from '@keyward/runtime'

const HELP = 'the start takes only the option --demo-data, which creates demo data to look at'

/** Returns the options. Throws ConfigError for any other argument. */
export function readArguments(given: string[]): { wantsDemoData: boolean } {
  try {
    const { values } = parseArgs({ args: given, options: { 'demo-data': { type: 'boolean', default: false } } })
    return { wantsDemoData: values['demo-data'] }
  } catch {
    throw new ConfigError(`${HELP}; got ${given.join(' ')}`)
  }
}
