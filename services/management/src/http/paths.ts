/** Where the API lies. */
export const basePath = '/api/v1'
