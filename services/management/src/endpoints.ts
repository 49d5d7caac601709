/** Every endpoint of the management API, in the order of the document. */
import { accessRules } from './access-rules/routes.ts'
import { credentials } from './credentials/routes.ts'
import { customers } from './customers/routes.ts'
import type { Endpoint } from './http/endpoint.ts'
import { licenses } from './licenses/routes.ts'
import { members } from './members/routes.ts'
import { organizations } from './organizations/routes.ts'
import { products } from './products/routes.ts'
import { records } from './records/routes.ts'
import { signingKeys } from './signing-keys/routes.ts'
import { validators } from './validators/routes.ts'

export const endpoints: readonly Endpoint[] = [
  ...organizations,
  ...products,
  ...customers,
  ...licenses,
  ...accessRules,
  ...records,
  ...credentials,
  ...members,
  ...signingKeys,
  ...validators,
]
