export { describeMachine, readResults, writeResult, type Machine, type ResultFile } from './results.ts'
