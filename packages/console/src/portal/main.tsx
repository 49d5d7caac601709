/** Starts the page of the portal. The code of a link is removed from the address first, so that no history contains it. */

import { createRoot } from 'react-dom/client'

import { Portal } from './portal.tsx'

const CONFIRM = 'confirm.'
const fragment = window.location.hash.slice(1)
const { pathname, search } = window.location
if (fragment !== '') window.history.replaceState(null, '', `${pathname}${search}`)
// Another link in the address bar of this page changes only the fragment.
window.addEventListener('hashchange', () => window.location.reload())

const root = document.querySelector('#portal')
if (root)
  createRoot(root).render(
    <Portal
      code={fragment.replace(CONFIRM, '') || null}
      confirms={fragment.startsWith(CONFIRM)}
      organizationId={new URLSearchParams(search).get('organization')}
    />,
  )
