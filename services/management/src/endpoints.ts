import { records } from './activity/routes.ts'
import type { Endpoint } from './http/endpoint.ts'
/** Every endpoint of the management API, in the order of the document. */
import { accessRules } from './resources/access-rules/routes.ts'
import { credentials } from './resources/credentials/routes.ts'
import { customers } from './resources/customers/routes.ts'
import { licenses } from './resources/licenses/routes.ts'
import { members } from './resources/members/routes.ts'
import { organizations } from './resources/organizations/routes.ts'
import { products } from './resources/products/routes.ts'
import { signingKeys } from './resources/signing-keys/routes.ts'
import { validators } from './resources/validators/routes.ts'

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
