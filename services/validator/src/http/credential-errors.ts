/**
 * Describes why an `authorization` header contains no valid API key (docs/api.md#h5). The description contains no secret.
 */

import { parseSecret } from '@keyward/database/secrets'

const EXPECTED = 'Send the API key in the header "Authorization: Bearer kwk_...".'
const SCHEME = /^[A-Za-z][A-Za-z0-9-]{0,19}$/

/** Returns the error message of the 401 response. `authorization` is the value of the header, or '' if the request has none. */
export function describeCredential(authorization: string): string {
  if (authorization === '') return `The request has no credential. ${EXPECTED}`
  const separator = authorization.indexOf(' ')
  const scheme = separator < 0 ? authorization : authorization.slice(0, separator)
  if (scheme.toLowerCase() !== 'bearer') {
    if (authorization === 'repeated') return `The header Authorization occurs more than once. ${EXPECTED}`
    if (scheme.startsWith('kwk_')) return `The header Authorization has no scheme. ${EXPECTED}`
    return `The header Authorization has ${SCHEME.test(scheme) ? `the scheme ${scheme}` : 'an invalid scheme'}. ${EXPECTED}`
  }
  const secret = separator < 0 ? '' : authorization.slice(separator).trim()
  if (secret === '') return `The header Authorization has no API key. ${EXPECTED}`
  const kind = parseSecret(secret)?.kind
  if (kind === 'API_KEY') return 'The API key is unknown, revoked or expired.'
  if (kind === 'MANAGEMENT_TOKEN')
    return 'A management token (kwm_...) cannot check licenses. Send an API key (kwk_...).'
  if (kind === 'ACCESS_TOKEN')
    return 'A personal access token (kwp_...) cannot check licenses. Send an API key (kwk_...).'
  return secret.startsWith('kwk_')
    ? 'The API key is mistyped or incomplete: its checksum does not match.'
    : `The credential is not an API key. ${EXPECTED}`
}
