export { type AcpOptions, serveAcp } from './serve.ts'
export { SESSION_FOLDER } from './session.ts'
