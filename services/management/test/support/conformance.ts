/** Validates responses against the `/openapi.json` of the service. */

import { problem } from '@keyward/contract'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'

import { documentedErrors } from '../../src/openapi/management-api.ts'
import type { Endpoint } from '../../src/operations/implement.ts'
import type { ApiResponse } from './harness.ts'

const contents = z.record(z.string(), z.object({ schema: z.unknown() }))
const oneResponse = z.looseObject({ $ref: z.string().optional(), content: contents.optional() })
const responses = z.record(z.string(), oneResponse)
export const documentSchema = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses }))),
  components: z.looseObject({ responses }),
})
export type Document = z.output<typeof documentSchema>

/** Returns the description of a response, and its place as the parts of a JSON pointer. */
export function findResponse(document: Document, route: string, method: string, status: string) {
  const own = document.paths[route]?.[method]?.responses[status]
  const name = own?.$ref?.replace('#/components/responses/', '')
  return name === undefined
    ? { place: ['paths', route, method, 'responses', status], documented: own }
    : { place: ['components', 'responses', name], documented: document.components.responses[name] }
}

const escape = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))

export interface ResponseValidator {
  /** Returns the difference between the response and the document, or null when there is none. */
  violation(endpoint: Endpoint, response: ApiResponse): string | null
}

export function createResponseValidator(document: Document): ResponseValidator {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addFormat('base64', /^[A-Za-z0-9+/]*={0,2}$/)
  ajv.addSchema(document, 'document')
  return {
    violation(endpoint, response) {
      const route = `/api/v1${endpoint.path}`
      const method = endpoint.method.toLowerCase()
      const { place, documented } = findResponse(document, route, method, String(response.status))
      if (!documented) return `the status ${response.status} is not documented: ${response.text}`
      const type = response.headers.get('content-type')?.split(';')[0] ?? ''
      if (!documented.content) return response.text === '' ? null : 'there is a body where none is documented'
      if (!documented.content[type]) return `the content type ${type} is not documented for ${response.status}`
      const pointer = [...place, 'content', type, 'schema']
      const validate = ajv.getSchema(`document#/${pointer.map(escape).join('/')}`)
      if (!validate) return 'the document has no such schema'
      const value = type.startsWith('text/') ? response.text : response.body
      if (validate(value) !== true) return `${ajv.errorsText(validate.errors)}: ${response.text}`
      if (response.status < 400) return null
      const { code } = problem.parse(response.body)
      const isDocumented = documentedErrors(endpoint).some((one) => one.code === code && one.status === response.status)
      return isDocumented ? null : `the code ${code} is not documented for ${response.status}`
    },
  }
}
