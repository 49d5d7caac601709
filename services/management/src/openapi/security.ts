/** The credentials of both APIs as security schemes (docs/api.md#a1). Every operation lists the schemes that it accepts. */

const bearer = (bearerFormat: string, description: string) =>
  ({ type: 'http', scheme: 'bearer', bearerFormat, description }) as const

export const SECURITY_SCHEMES = {
  apiKey: bearer('kwk_…', "An API key, for customers' apps. Paste the secret alone, without `Bearer`."),
  vendorToken: bearer(
    'kwm_… or kwp_…',
    'A management token or a personal access token, for the vendor. Paste the secret alone, without `Bearer`.',
  ),
  operatorToken: bearer(
    'KEYWARD_OPERATOR_TOKEN',
    'The token of the operator who runs this installation. Paste the secret alone, without `Bearer`.',
  ),
} as const

export type SecurityScheme = keyof typeof SECURITY_SCHEMES
