/** The OpenAPI document of both APIs, served at `/openapi.json`: the validation API for apps and the management API for vendors and the operator. */

import { BASE_PATH } from '@keyward/contract/operations'
import { VERSION } from '@keyward/contract/version'
import { createDocument, type ZodOpenApiOperationObject } from 'zod-openapi'

import type { Endpoint, Tag } from '../operations/implement.ts'
import { HEADERS } from './headers.ts'
import { documentedErrors, managementOperation } from './management-api.ts'
import { completeRequests } from './offered-requests.ts'
import { PROBLEM_EXAMPLES, sharedResponses } from './problems.ts'
import { SECURITY_SCHEMES } from './security.ts'
import { VALIDATION_PATHS, VALIDATION_TAGS } from './validation-api.ts'
import { WEBHOOKS } from './webhooks.ts'

type OpenApiDocument = ReturnType<typeof createDocument>

const DESCRIPTION = `Keyward issues and checks software licenses. Requests have the header \`Authorization: Bearer <secret>\`. The secret depends on
the operation:

- **Apps** of customers send an API key (\`kwk_…\`).
- **Vendors** send a management token (\`kwm_…\`) or a personal access token (\`kwp_…\`).
- The **operator** of this installation sends the operator token.

To try an operation, enter the secret in the section "Authentication" and press "Test Request". Operations that change something
change it in this installation.

**Apps.** Only a verdict has the field \`valid\`. Every other response is an error. An app that gets a 5xx or no
response uses its offline license file.

**Vendors and operator.** Lists are sorted newest first, accept \`limit\` and \`cursor\`, and are stable under inserts. A POST accepts
\`Idempotency-Key\`: a second request with the same key and body within 24 hours gets the response of the first, without secrets.
Changes that validators apply accept \`Prefer: wait=N\`. Errors are problems (RFC 9457) with a stable \`code\`.

The document behind this page, for generators of clients, is [openapi.json](openapi.json).`

type Paths = Record<string, Record<string, ZodOpenApiOperationObject>>

function managementPaths(endpoints: readonly Endpoint[]): Paths {
  const paths: Paths = {}
  for (const endpoint of endpoints) {
    const path = BASE_PATH + endpoint.path
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: managementOperation(endpoint) }
  }
  return paths
}

/**
 * Returns the tags, grouped by caller. A tag is for apps if one of its endpoints is for apps. Otherwise the caller of its first endpoint
 * determines the group.
 */
function tagGroups(endpoints: readonly Endpoint[], tags: readonly Tag[]): { name: string; tags: string[] }[] {
  const groupOf = (name: string): string => {
    const callers = endpoints.filter(({ tag }) => tag.name === name).map(({ operation }) => operation.needs)
    if (callers.length === 0 || callers.includes('apiKey')) return 'Apps'
    return callers[0] === 'operator' ? 'Operator' : 'Vendors'
  }
  const groups = Map.groupBy(tags, ({ name }) => groupOf(name))
  return ['Apps', 'Vendors', 'Operator'].map((name) => ({
    name,
    tags: (groups.get(name) ?? []).map((tag) => tag.name),
  }))
}

export function createOpenApi(endpoints: readonly Endpoint[]): OpenApiDocument {
  const managementTags = new Map(endpoints.map(({ tag }) => [tag.name, tag]))
  const tags = [...VALIDATION_TAGS, ...managementTags.values()]
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Keyward API',
      version: VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This installation' }],
    tags,
    'x-tagGroups': tagGroups(endpoints, tags),
    paths: { ...VALIDATION_PATHS, ...managementPaths(endpoints) },
    webhooks: WEBHOOKS,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers: HEADERS,
      examples: PROBLEM_EXAMPLES,
      responses: sharedResponses(endpoints.map(documentedErrors)),
    },
  })
  completeRequests(document)
  return document
}
