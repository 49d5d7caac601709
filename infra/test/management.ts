import type { ManagementAccess } from '../shared/demo.ts'
import { type ServiceProcess, startService, untilReady } from '../shared/service-process.ts'

/** Starts the service with the database at `databaseUrl`. Resolves when the service is ready. */
export async function startManagement(
  databaseUrl: string,
): Promise<{ management: ServiceProcess; access: ManagementAccess }> {
  const operatorToken = 'operator-token-of-these-tests-only'
  const management = await startService('management', {
    ...process.env,
    KEYWARD_MANAGEMENT_PORT: '0',
    KEYWARD_MANAGEMENT_ADMIN_PORT: '0',
    KEYWARD_DATABASE_URL: databaseUrl,
    KEYWARD_OPERATOR_TOKEN: operatorToken,
    KEYWARD_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    KEYWARD_LOG_LEVEL: 'warn',
  })
  await untilReady('management', management.adminPort)
  return { management, access: { url: `http://127.0.0.1:${management.port}`, operatorToken } }
}
