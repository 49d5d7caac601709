<?php

/** Loads the client in an app without Composer. */

declare(strict_types=1);

foreach (['LicenseClient', 'LicenseFile', 'Machine', 'MachineKey', 'Result', 'SignedAnswer', 'Storage', 'Transport'] as $name) {
    require_once __DIR__ . "/$name.php";
}
