/** Sends the license key to the main process and shows every result. */

const { enterKey, onResult } = globalThis.licensing

onResult((result) => {
  const why = result.valid ? result.source : result.message
  document.querySelector('#license').value = `${result.valid ? 'valid' : 'not valid'} (${why})`
})

document.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault()
  void enterKey(new FormData(event.target).get('key'))
})
