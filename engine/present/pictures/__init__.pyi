from .pictures import PICTURES as PICTURES
from .pictures import Picture as Picture
from .pictures import picture_lines as picture_lines
from .pictures import picture_of as picture_of
from .roofline_chart import limit_text as limit_text
