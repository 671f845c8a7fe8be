export { SESSION_FOLDER } from './session-folder.ts'
export { type AcpOptions, serveAcp } from './stdio.ts'
