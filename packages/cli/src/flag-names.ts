/** Names fields of the API as the command line does: `#/policy/expiresAt` is `--expires`, `#/email` is `<email>`. */

import type { Command } from 'commander'

/** Fields whose flag has another name. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  expiresAt: ['expires'],
  productId: ['product'],
  customerId: ['customer'],
  licenseId: ['license'],
  licenseKey: ['license'],
  scopeId: ['product', 'license'],
  machineId: ['machine'],
  permissions: ['permission'],
  from: ['since'],
  groupBy: ['by'],
}

/** Returns the flag or argument of the command that a JSON pointer or a query parameter belongs to, else the field's path. */
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
