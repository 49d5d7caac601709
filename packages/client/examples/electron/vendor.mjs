/** The constants that the app is built with: the service, an API key, and the public keys that verify license files. */
export const vendor = {
  baseUrl: 'https://licenses.example.com',
  apiKey: 'kwk_YOUR_API_KEY',
  publicKeys: [{ keyId: 'YOUR_KEY_ID', publicKey: 'YOUR_PUBLIC_KEY' }],
}
