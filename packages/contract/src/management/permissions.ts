/** The permissions that a management credential can have (docs/api.md#a2). */

import { z } from 'zod'

export const ALL_PERMISSIONS = [
  'licenses.read',
  'licenses.write',
  'products.read',
  'products.write',
  'customers.read',
  'customers.write',
  'analytics.read',
  'audit.read',
  'credentials.write',
  'signing-keys.write',
  'webhooks.read',
  'webhooks.write',
  'orders.read',
  'orders.write',
] as const

export const permission = z.enum(ALL_PERMISSIONS).meta({ description: 'A permission.', example: 'licenses.read' })
export type Permission = z.infer<typeof permission>

export const permissions = z
  .array(permission)
  .max(ALL_PERMISSIONS.length)
  .transform((list) => [...new Set(list)])
  .meta({
    description: 'The permissions to grant. Callers can grant only permissions that they have.',
    example: ['licenses.read'],
  })
