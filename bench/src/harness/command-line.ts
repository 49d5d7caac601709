/** Parses the command lines of the programs: options that are whole numbers, and `--help`. Errors are one line. */

import { parseArgs } from 'node:util'

/** Runs a program. Prints an error as one line on stderr and sets exit code 1. */
export async function runMain(name: string, main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}

/**
 * Reads options that are whole numbers of at least 0. `defaults` contains the name and default of each option, so `{ rounds: 5 }` accepts
 * `--rounds 7`. Prints `help` and returns null for `--help`. Throws an Error that names an invalid option.
 */
export function numbersFrom<Name extends string>(
  help: string,
  defaults: Readonly<Record<Name, number>>,
): Record<Name, number> | null {
  const names = Object.keys(defaults)
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' } as const]))
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
  if (values['help'] === true) {
    console.log(help)
    return null
  }
  const numbers = { ...defaults }
  for (const [name, text] of Object.entries(values))
    if (typeof text === 'string') Object.assign(numbers, { [name]: wholeNumber(`--${name}`, text) })
  return numbers
}

/** Parses a whole number. Throws an Error that names the option, the range and the value received. */
export function wholeNumber(name: string, text: string, min = 0, max = 100_000_000): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new Error(`${name} takes a whole number from ${min} to ${max}, got "${text}"`)
}
