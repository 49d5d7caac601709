/**
 * Returns the content security policy of a page, which forbids other hosts and inline scripts. Libraries insert style elements, which run no
 * code.
 */
export function contentSecurityPolicy(formAction: "'self'" | "'none'"): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    `form-action ${formAction}`,
    "frame-ancestors 'none'",
  ].join('; ')
}
