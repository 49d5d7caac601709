/** Starts the console in the browser with its theme, response cache and router. */

import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'

import { ApiError } from './api/client.ts'
import { Console } from './shell/console.tsx'
import { resolver, theme } from './theme.ts'

/** Set by the build. */
declare const IS_DEVELOPMENT: boolean

const MAX_RETRIES = 2

/** Returns whether to retry a failed request. An error that the API returned is not retried. */
function retry(failures: number, error: Error): boolean {
  return !(error instanceof ApiError) && failures < MAX_RETRIES
}

const queries = new QueryClient({
  defaultOptions: { queries: { retry, staleTime: 5_000, refetchOnWindowFocus: true } },
})

/** The page of all components, which only a development build contains. */
const Design =
  IS_DEVELOPMENT && window.location.pathname === '/console/design' ? (await import('./design.tsx')).Design : null

const root = document.querySelector('#console')
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <MantineProvider theme={theme} defaultColorScheme="auto" cssVariablesResolver={resolver}>
          <Notifications position="bottom-center" limit={1} />
          <Router base="/console">{Design === null ? <Console /> : <Design />}</Router>
        </MantineProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
