from dataclasses import dataclass
class ReportRefused(Exception): pass
@dataclass
class Of:
    run:str; now_ms:int; records:dict; missing:dict
def write_report(*a): pass
def give(*a): pass
