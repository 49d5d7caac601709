/** Code that sends a check, for curl and for each client that Keyward ships. */

export interface Values {
  baseUrl: string
  apiKey: string
  licenseKey: string
  productId: string
  keyId: string
  publicKey: string
}

function curl({ baseUrl, apiKey, licenseKey }: Values): string {
  const body = JSON.stringify({ license: licenseKey, fingerprint: 'my-machine' })
  return `curl ${baseUrl}/api/v2/license/validate \\
  -H 'authorization: Bearer ${apiKey}' \\
  -H 'content-type: application/json' \\
  -d '${body}'`
}

function typescript({ baseUrl, apiKey, licenseKey, productId, keyId, publicKey }: Values): string {
  const imports = [
    "import { createLicenseClient } from '@keyward/client'",
    "import { fileStorage, machineId } from '@keyward/client/node'",
  ]
  return `${imports.join('\n')}

const client = createLicenseClient({
  baseUrl: '${baseUrl}',
  apiKey: '${apiKey}',
  publicKeys: [{ keyId: '${keyId}', publicKey: '${publicKey}' }],
  licenseKey: '${licenseKey}',
  productId: '${productId}',
  machineId: await machineId('my-app'),
  storage: fileStorage('license.json'),
})

const result = await client.validate()
if (!result.valid) console.error(result.code)`
}

function python({ baseUrl, apiKey, licenseKey, productId, keyId, publicKey }: Values): string {
  return `import keyward

client = keyward.LicenseClient(
    base_url="${baseUrl}",
    api_key="${apiKey}",
    public_keys={"${keyId}": "${publicKey}"},
    license_key="${licenseKey}",
    product_id="${productId}",
    machine_id="my-machine",
    storage="license.json",
)

result = client.validate()
if not result.valid:
    print(result.code)`
}

function go({ baseUrl, apiKey, licenseKey, productId, keyId, publicKey }: Values): string {
  return `client, err := keyward.New(keyward.Options{
	BaseURL:    "${baseUrl}",
	APIKey:     "${apiKey}",
	PublicKeys: map[string]string{"${keyId}": "${publicKey}"},
	LicenseKey: "${licenseKey}",
	ProductID:  "${productId}",
	MachineID:  "my-machine",
	Storage:    "license.json",
})
if err != nil {
	log.Fatal(err)
}

if result := client.Validate(); !result.Valid {
	fmt.Println(result.Code)
}`
}

function csharp({ baseUrl, apiKey, licenseKey, productId, keyId, publicKey }: Values): string {
  return `using Keyward;

var client = new LicenseClient(new LicenseOptions
{
    BaseUrl = "${baseUrl}",
    ApiKey = "${apiKey}",
    PublicKeys = new() { ["${keyId}"] = "${publicKey}" },
    LicenseKey = "${licenseKey}",
    ProductId = "${productId}",
    MachineId = "my-machine",
    Storage = "license.json",
});

var result = await client.ValidateAsync();
if (!result.Valid) Console.WriteLine(result.Code);`
}

function java({ baseUrl, apiKey, licenseKey, productId, keyId, publicKey }: Values): string {
  return `var client = LicenseClient.builder()
    .baseUrl("${baseUrl}")
    .apiKey("${apiKey}")
    .publicKey("${keyId}", "${publicKey}")
    .licenseKey("${licenseKey}")
    .productId("${productId}")
    .machineId("my-machine")
    .storage(Path.of("license.json"))
    .build();

var result = client.validate();
if (!result.valid()) System.out.println(result.code());`
}

export const LANGUAGES = {
  curl: { label: 'curl', code: curl },
  typescript: { label: 'TypeScript', code: typescript },
  python: { label: 'Python', code: python },
  go: { label: 'Go', code: go },
  csharp: { label: 'C#', code: csharp },
  java: { label: 'Java', code: java },
} as const
export type Language = keyof typeof LANGUAGES
