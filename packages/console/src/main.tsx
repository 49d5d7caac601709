/** Starts the console in the browser with its theme, response cache and router. */

import { Alert, Badge, createTheme, type CSSVariablesResolver, MantineProvider, Modal } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'

import { ApiError } from './api/client.ts'
import { Console } from './shell/console.tsx'

const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 8 },
  defaultRadius: 'md',
  autoContrast: true,
  respectReducedMotion: true,
  components: {
    // The colored titles of the component library have too little contrast.
    Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
    // The header of a window is not the banner landmark of the page.
    Modal: Modal.extend({ defaultProps: { attributes: { header: { role: 'presentation' } } } }),
    Badge: Badge.extend({ defaultProps: { tt: 'none', fw: 600, miw: 'max-content' } }),
  },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
})

/** Gives dimmed text and placeholders a contrast of at least 4.5 to 1. */
const readable: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': 'var(--mantine-color-gray-7)',
    '--mantine-color-placeholder': 'var(--mantine-color-gray-7)',
  },
  dark: {
    '--mantine-color-dimmed': 'var(--mantine-color-dark-1)',
    '--mantine-color-placeholder': 'var(--mantine-color-dark-1)',
  },
})

const MAX_RETRIES = 2

/** Returns whether to retry a failed request. An error that the API returned is not retried. */
function retry(failures: number, error: Error): boolean {
  return !(error instanceof ApiError) && failures < MAX_RETRIES
}

const queries = new QueryClient({
  defaultOptions: { queries: { retry, staleTime: 5_000, refetchOnWindowFocus: true } },
})

const root = document.querySelector('#console')
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <MantineProvider theme={theme} defaultColorScheme="auto" cssVariablesResolver={readable}>
          <Notifications position="bottom-right" />
          <Router base="/console">
            <Console />
          </Router>
        </MantineProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
