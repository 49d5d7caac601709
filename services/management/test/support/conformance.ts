/** Judges real answers by the OpenAPI document that the service itself serves. */
import { problem } from '@keyward/contract'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'

import type { Endpoint } from '../../src/http/endpoint.ts'
import { documentedErrors } from '../../src/http/openapi.ts'
import type { Answer } from './harness.ts'

const contents = z.record(z.string(), z.object({ schema: z.unknown() }))
const responses = z.record(z.string(), z.looseObject({ content: contents.optional() }))
export const documentSchema = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.record(z.string(), z.looseObject({ responses }))),
})
export type Document = z.output<typeof documentSchema>

const escape = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))

export interface Judge {
  /** What is wrong with the answer, or null. */
  fault(endpoint: Endpoint, answer: Answer): string | null
}

export function createJudge(document: Document): Judge {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addFormat('base64', /^[A-Za-z0-9+/]*={0,2}$/)
  ajv.addSchema(document, 'document')
  return {
    fault(endpoint, answer) {
      const { path, method } = endpoint.definition
      const route = `/api/v1${path}`
      const response = document.paths[route]?.[method]?.responses[String(answer.status)]
      if (!response) return `the status ${answer.status} is not documented: ${answer.text}`
      const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
      if (!response.content) return answer.text === '' ? null : 'there is a body where none is documented'
      if (!response.content[type]) return `the content type ${type} is not documented for ${answer.status}`
      const pointer = ['paths', route, method, 'responses', String(answer.status), 'content', type, 'schema']
      const validate = ajv.getSchema(`document#/${pointer.map(escape).join('/')}`)
      if (!validate) return 'the document has no such schema'
      const value = type === 'text/plain' ? answer.text : answer.body
      if (validate(value) !== true) return `${ajv.errorsText(validate.errors)}: ${answer.text}`
      if (answer.status < 400) return null
      const { code } = problem.parse(answer.body)
      const isDocumented = documentedErrors(endpoint).some((one) => one.code === code && one.status === answer.status)
      return isDocumented ? null : `the code ${code} is not documented for ${answer.status}`
    },
  }
}
