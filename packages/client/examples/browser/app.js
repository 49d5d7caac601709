/** A web app that shows its license. Bundle it like any web app. After the first online check, it also works offline. */

import { createLicenseClient } from '@keyward/client'
import { browserStorage } from '@keyward/client/browser'

const client = createLicenseClient({
  baseUrl: location.origin,
  apiKey: 'kwk_YOUR_API_KEY',
  publicKeys: [{ keyId: 'YOUR_KEY_ID', publicKey: 'YOUR_PUBLIC_KEY' }],
  licenseKey: 'XXXX-XXXX-XXXX-XXXX',
  machineId: browserId(),
  storage: browserStorage(),
})

const result = await client.validate()
document.querySelector('#license').value = result.valid ? `valid (${result.source})` : result.message
await client.settled()
document.body.dataset.settled = 'true'

/** Returns a random id that is stored in the site's data, because browsers have no machine id. */
function browserId() {
  const id = localStorage.getItem('browser-id') ?? crypto.randomUUID()
  localStorage.setItem('browser-id', id)
  return id
}
