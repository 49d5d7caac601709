/** Code that sends a check, for curl and for each client that Keyward ships. */

import { REPOSITORY, VERSION } from '@keyward/contract/version'

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
console.log(result.valid ? 'Licensed.' : result.code)`
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
print("Licensed." if result.valid else result.code)`
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

fmt.Println(client.Validate(context.Background()).Code)`
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
Console.WriteLine(result.Valid ? "Licensed." : result.Code);`
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
System.out.println(result.valid() ? "Licensed." : result.code());`
}

interface Snippet {
  label: string
  /** The command or the line of a build file that adds the client to an app, or null if no client is needed. */
  install: string | null
  file: string
  /** The command that runs the file, or null if it is part of an app. */
  run: string | null
  code: (values: Values) => string
}

const CURL: Snippet = { label: 'curl', install: null, file: 'sh', run: null, code: curl }
const TYPESCRIPT: Snippet = {
  label: 'TypeScript',
  install: 'npm add @keyward/client',
  file: 'app.mjs',
  run: 'node app.mjs',
  code: typescript,
}
const PYTHON: Snippet = {
  label: 'Python',
  install: 'python3 -m pip install keyward',
  file: 'app.py',
  run: 'python3 app.py',
  code: python,
}
const GO: Snippet = {
  label: 'Go',
  install: `go get ${REPOSITORY.replace('https://', '')}/packages/client/other-languages/go`,
  file: 'main.go',
  run: null,
  code: go,
}
const CSHARP: Snippet = {
  label: 'C#',
  install: 'dotnet add package Keyward.Client',
  file: 'Program.cs',
  run: 'dotnet run',
  code: csharp,
}
const JAVA: Snippet = {
  label: 'Java',
  install: `implementation("io.github.keyward:keyward-client:${VERSION}")`,
  file: 'App.java',
  run: null,
  code: java,
}

export const LANGUAGES = { curl: CURL, typescript: TYPESCRIPT, python: PYTHON, go: GO, csharp: CSHARP, java: JAVA }
export type Language = keyof typeof LANGUAGES
