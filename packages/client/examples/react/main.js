/** Starts the React app. Creates the client once, with the vendor's constants and the user's license key. */

import { createLicenseClient } from '@keyward/client'
import { browserStorage } from '@keyward/client/browser'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'

import { Licensed } from './app.tsx'

const client = createLicenseClient({
  baseUrl: location.origin,
  apiKey: 'kwk_YOUR_API_KEY',
  publicKeys: [{ keyId: 'YOUR_KEY_ID', publicKey: 'YOUR_PUBLIC_KEY' }],
  licenseKey: 'XXXX-XXXX-XXXX-XXXX',
  machineId: browserId(),
  storage: browserStorage(),
})

createRoot(document.querySelector('#root')).render(
  createElement(Licensed, { client }, createElement('h1', null, 'Acme Studio')),
)

/** Returns a random id that is stored in the site's data, because browsers have no machine id. */
function browserId() {
  const id = localStorage.getItem('browser-id') ?? crypto.randomUUID()
  localStorage.setItem('browser-id', id)
  return id
}
