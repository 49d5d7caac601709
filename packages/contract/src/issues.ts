/**
 * The messages of common validation errors. Each message completes a sentence that begins with the name of the field. As the error map of
 * zod, they replace all messages of the library.
 */

import type { z } from 'zod'

type Issue = z.core.$ZodRawIssue

const TYPE_NAMES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

const FORMATS: Record<string, string> = {
  uuid: 'must be an id (a UUID)',
  datetime: 'must be a time in ISO 8601 with "Z" or an offset, such as 2027-01-31T00:00:00Z',
}

const UNITS: Record<string, [one: string, many: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
}

function listed(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
  return texts.length < 2 ? texts.join('') : `one of ${texts.join(', ')}`
}

function describeSize(origin: string, bound: number | bigint, which: 'least' | 'most'): string {
  const unit = UNITS[origin]
  if (!unit) return `must be at ${which} ${bound}`
  if (which === 'least' && Number(bound) === 1) return 'must not be empty'
  return `must have at ${which} ${Number(bound).toLocaleString('en')} ${unit[Number(bound) === 1 ? 0 : 1]}`
}

/** Returns the message for an issue of zod. Pass it to `safeParse(value, { error: describeIssue })`. */
export function describeIssue(issue: Issue): string {
  if (issue.input === undefined && issue.code !== 'custom') return 'is required'
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${listed(issue.values)}`
    case 'invalid_format':
      return FORMATS[issue.format] ?? 'has the wrong format'
    case 'too_small':
      return describeSize(issue.origin, issue.minimum, 'least')
    case 'too_big':
      return describeSize(issue.origin, issue.maximum, 'most')
    case 'unrecognized_keys':
      return 'is not known'
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_key':
      return `is not a valid name: it ${issue.issues[0]?.message ?? 'is not allowed'}`
    case 'invalid_union':
    case 'invalid_element':
    case 'custom':
      return 'is not valid'
    default:
      return issue satisfies never
  }
}
