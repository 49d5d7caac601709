/** Converts names of the API's fields to flags and arguments: `#/policy/expiresAt` to `--expires`, `#/email` to `<email>`. */

import type { Command } from 'commander'

/** Maps fields of the API to flags and arguments with other names. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  expiresAt: ['expires'],
  productId: ['product'],
  customerId: ['customer'],
  licenseId: ['license'],
  licenseKey: ['license'],
  scopeId: ['product', 'license'],
  machineId: ['machine', 'id'],
  resourceId: ['resource'],
  actorId: ['actor'],
  to: ['until'],
  permissions: ['permission'],
  from: ['since'],
  groupBy: ['by'],
}

/** Returns the flag or argument for a JSON pointer or query parameter. Returns the path of the field if the command has neither. */
export function flagName(command: Command, pointer: string): string {
  const path = pointer.replace(/^(?:#\/?|\?)/, '').split('/')
  const field = path.findLast((part) => !/^\d+$/.test(part)) ?? ''
  const names = new Set([...(FLAGS[field] ?? []), field])
  const options = command.options.filter((option) => names.has(option.attributeName()))
  const option = options.find((one) => command.getOptionValue(one.attributeName()) !== undefined) ?? options[0]
  if (option?.long !== undefined) return option.long ?? ''
  const argument = command.registeredArguments.find((one) => names.has(one.name()))
  if (argument) return `<${argument.name()}>`
  return field === '' ? 'The request' : path.join('.')
}
