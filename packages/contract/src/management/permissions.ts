/** What a management credential may be permitted to do. */
import { z } from 'zod'

export const allPermissions = [
  'licenses.read',
  'licenses.write',
  'products.read',
  'products.write',
  'customers.read',
  'customers.write',
  'analytics.read',
  'audit.read',
  'credentials.write',
] as const

export const permission = z.enum(allPermissions).meta({ description: 'A permission.', example: 'licenses.read' })
export type Permission = z.infer<typeof permission>

export const permissions = z
  .array(permission)
  .max(allPermissions.length)
  .transform((list) => [...new Set(list)])
  .meta({ description: 'What it may do. Nobody can grant a permission that they lack.', example: ['licenses.read'] })
