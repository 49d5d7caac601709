/** Exposes two functions to the window. The window has no other access to Node. */

const { contextBridge, ipcRenderer } = require('electron')

contextBridge.exposeInMainWorld('licensing', {
  enterKey: (licenseKey) => ipcRenderer.invoke('enter-license-key', licenseKey),
  onResult: (listener) => ipcRenderer.on('license', (_event, result) => listener(result)),
})
