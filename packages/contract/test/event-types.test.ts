/**
 * Compares docs/event-types.md with the text generated from the schemas of events. `npm test -- packages/contract/test/event-types -u`
 * updates the document.
 */

import { expect, test } from 'vitest'
import { z } from 'zod'

import { EXAMPLE_ID } from '../src/management/common.ts'
import { EVENT_TYPES, event, eventTypes } from '../src/management/events.ts'
import { license } from '../src/management/licenses.ts'

/** Returns the example of a schema, or an object with the examples of its members. */
function exampleOf(schema: z.core.$ZodType): unknown {
  const meta = z.globalRegistry.get(schema)
  if (meta && 'example' in meta && meta['example'] !== undefined) return meta['example']
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return exampleOf(schema.unwrap())
  if (schema instanceof z.ZodObject)
    return Object.fromEntries(
      Object.entries(schema.shape)
        .filter(([, member]) => !(member instanceof z.ZodOptional) || exampleOf(member) !== undefined)
        .map(([name, member]) => [name, exampleOf(member)]),
    )
  if (schema instanceof z.ZodArray) return [exampleOf(schema.element)]
  return schema instanceof z.ZodBoolean ? false : undefined
}

const record = z.record(z.string(), z.unknown())

/** The actor in the examples, without the optional members. */
const ACTOR = { type: 'MANAGEMENT_TOKEN', id: EXAMPLE_ID, name: 'deploy script' }
const POLICY = record.parse(exampleOf(license.shape.policy))
const SYSTEM = new Set([
  'license.started',
  'license.expiring',
  'license.expired',
  'license.first_used',
  'quota.reached',
  'license.blacklisted',
  'webhook_endpoint.disabled',
])

function exampleOfType(type: (typeof EVENT_TYPES)[number]): object {
  const data = record.parse(exampleOf(eventTypes[type].data))
  const { omitted: _omitted, previous, ...rest } = data
  const isSystem = SYSTEM.has(type) || /^machine\.|\.limit_exceeded$|\.expired$/.test(type)
  const changes: Record<string, object> = {
    'license.suspended': { status: 'active', suspendedAt: null },
    'license.reinstated': { status: 'suspended', suspendedAt: '2026-11-20T09:30:00.000Z' },
    'license.revoked': { status: 'active', revokedAt: null },
    'license.renewed': { policy: { ...POLICY, expiresAt: '2026-01-01T00:00:00.000Z' }, status: 'expired' },
    'license.key_replaced': { key: 'CQEP-VBNC-7K5N-JYSR' },
    'access_rule.updated': { note: null },
    'customer.updated': { name: null },
    'product.updated': { name: 'Acme Studio 1' },
    'member.updated': { permissions: [] },
  }
  const resource = record.safeParse(data['resource']).data ?? {}
  const policy = record.safeParse(resource['policy']).data
  const former = previous === undefined ? {} : { previous: changes[type] ?? { policy: { ...policy, maxMachines: 3 } } }
  if (policy && type !== 'license.suspended') resource['suspendedAt'] = null
  if (policy && type !== 'license.revoked') resource['revokedAt'] = null
  if (policy && /suspended|revoked|expired$/.test(type)) resource['status'] = type.replace('license.', '')
  if (type.startsWith('license.') || resource['status']) Object.assign(rest, { resource })
  const { id, timestamp, organizationId } = record.parse(exampleOf(event))
  return {
    id,
    type,
    timestamp,
    organizationId,
    data: { ...rest, ...former, actor: isSystem ? { type: 'SYSTEM' } : ACTOR },
  }
}

function document(): string {
  const rows = EVENT_TYPES.map(
    (type) => `| [\`${type}\`](#${type.replaceAll('.', '')}) | ${eventTypes[type].description} |`,
  )
  const sections = EVENT_TYPES.map(
    (type) =>
      `## ${type}\n\n${eventTypes[type].description}\n\n\`\`\`json\n${JSON.stringify(exampleOfType(type), null, 2)}\n\`\`\`\n`,
  )
  return [
    '# Event types',
    '',
    'This page lists the types of [events](webhooks.md), with an example of each. It is generated from the schemas in',
    '`packages/contract/src/management/events.ts`.',
    '',
    '| Type | When it is written |',
    '|---|---|',
    ...rows,
    '',
    ...sections,
  ].join('\n')
}

test('lists every type with an example in docs/event-types.md', async () => {
  await expect(document()).toMatchFileSnapshot('../../../docs/event-types.md')
})
