/**
 * `/openapi.json`, and `/docs`: the document as a page to read and try. The page loads nothing from another host and runs no inline
 * script; its content security policy sees to both.
 */
import express, { type Express, type RequestHandler } from 'express'
import { getAbsoluteFSPath } from 'swagger-ui-dist'

import type { OpenApiDocument } from './openapi.ts'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Keyward management API</title>
    <link rel="stylesheet" href="docs/assets/swagger-ui.css">
    <link rel="icon" type="image/png" href="docs/assets/favicon-32x32.png">
  </head>
  <body>
    <div id="page"></div>
    <script src="docs/assets/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

const start = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#page',
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
  tryItOutEnabled: true,
})
`

const assets = new Set(['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'])

const strict: RequestHandler = (_request, response, next) => {
  response.setHeader('content-security-policy', policy)
  next()
}

export function mountDocs(
  app: Express,
  document: OpenApiDocument,
  refuseMethod: (allow: string) => RequestHandler,
): void {
  const texts = [
    { path: '/openapi.json', type: 'application/json', text: JSON.stringify(document) },
    { path: '/docs', type: 'html', text: page },
    { path: '/docs/start.js', type: 'text/javascript', text: start },
  ]
  for (const { path, type, text } of texts)
    app
      .route(path)
      .get(strict, (_request, response) => void response.type(type).send(text))
      .all(refuseMethod('GET, HEAD'))
  app
    .route('/docs/')
    .get((_request, response) => response.redirect(308, '../docs'))
    .all(refuseMethod('GET, HEAD'))
  // Of the package only what the page needs; the rest holds pages of its own.
  const files = express.static(getAbsoluteFSPath(), { index: false, redirect: false, maxAge: '1h' })
  app.use('/docs/assets', strict, (request, response, next) => {
    if (assets.has(request.path.slice(1))) files(request, response, next)
    else next()
  })
}
