/** Starts the page of the portal. The code of a link is removed from the address first, so that no history contains it. */

import { createRoot } from 'react-dom/client'

import { Portal } from './portal.tsx'

const CONFIRM = 'confirm.'
const fragment = window.location.hash.slice(1)
if (fragment !== '') window.history.replaceState(null, '', window.location.pathname)
// Another link in the address bar of this page changes only the fragment.
window.addEventListener('hashchange', () => window.location.reload())

const root = document.querySelector('#portal')
if (root)
  createRoot(root).render(
    <Portal code={fragment.replace(CONFIRM, '') || null} confirms={fragment.startsWith(CONFIRM)} />,
  )
